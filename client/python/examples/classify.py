import sys

import cipherd
import numpy as np

images = np.load(sys.argv[2])  # [n, 784], pixels in [0, 1]
with cipherd.connect(sys.argv[1]) as client:
    with client.session("fashion_mlp") as session:  # makes a secret key, which stays here
        session.upload_keys()  # exactly the evaluation keys that the program reads
        logits = session.evaluate(images)  # encrypts, has the daemon evaluate, decrypts: [n, 10]
print(logits.argmax(axis=1))
