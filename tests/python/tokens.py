"""Tokens (JWT, RS256) as an issuer signs them, by openssl: for tests of daemons that ask for them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Has a private key in ``directory``, and its public key in ``directory/keys/KID.pem``."""

    name = "https://issuer.test"
    audience = "cipherd"
    kid = "2026-11"

    def __init__(self, directory: str) -> None:
        self.keys = os.path.join(directory, "keys")
        self._private_key = os.path.join(directory, "issuer.key")
        os.makedirs(self.keys)
        subprocess.run(["openssl", "genrsa", "-out", self._private_key, "2048"], check=True, capture_output=True)
        subprocess.run(["openssl", "rsa", "-in", self._private_key, "-pubout",
                        "-out", os.path.join(self.keys, self.kid + ".pem")], check=True, capture_output=True)

    @property
    def flags(self) -> tuple[str, ...]:
        """What a daemon is told that trusts it."""
        return ("--token-keys", self.keys, "--token-issuer", self.name, "--token-audience", self.audience)

    def token(self, subject: str, seconds: float = 3600) -> str:
        """Good for so long from now."""
        header = {"alg": "RS256", "kid": self.kid, "typ": "JWT"}
        claims = {"iss": self.name, "aud": self.audience, "sub": subject, "exp": int(time.time() + seconds)}
        signed = ".".join(_base64url(json.dumps(part).encode()) for part in (header, claims))
        run = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self._private_key], input=signed.encode(),
                             check=True, capture_output=True)
        return f"{signed}.{_base64url(run.stdout)}"
