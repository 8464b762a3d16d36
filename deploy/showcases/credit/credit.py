"""Scores applicants for credit without seeing them: logistic regression over the German credit data."""

import pathlib
import sys
import tempfile

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import german_credit
from cipherd.models import from_sklearn
from showcase import arguments, programs, report
from showcase.daemon import Daemon
from showcase.measurement import measure

SEED = 1
HELD_OUT_COUNT = 300
# The data's authors: to take a bad risk for a good one costs five times what the opposite does. So an applicant is
# refused from a probability of 1/6 on.
REFUSAL_THRESHOLD = np.log((1 / 6) / (5 / 6))
# What scores are to keep, in log-odds.
MAX_ERROR = 1e-4


def main() -> int:
    parser = arguments.parser(__doc__)
    arguments.add_in_flight(parser)
    parser.add_argument("--applicants", type=int, default=1000, help="to score, 100 to 1000 (default: all, 1000)")
    options = parser.parse_args()
    if not 100 <= options.applicants <= 1000:
        parser.error("--applicants: expected 100 to 1000")

    applicants, is_bad, categories, numbers = german_credit.load()
    # Categories and scaling stay with whoever has the applicants; the bank's model is what is served.
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), categories), (StandardScaler(), numbers))
    pipeline = make_pipeline(encoder, LogisticRegression(C=0.1, max_iter=1000))
    folds = StratifiedKFold(5, shuffle=True, random_state=SEED)
    cross_validated = cross_val_score(pipeline, applicants, is_bad, cv=folds, scoring="roc_auc")
    trained, held_out = train_test_split(
        np.arange(len(applicants)), test_size=HELD_OUT_COUNT, stratify=is_bad, random_state=SEED
    )
    pipeline.fit(applicants[trained], is_bad[trained])
    rows = np.asarray(encoder.transform(applicants), dtype=np.float64)

    # Those held out come first, so that fewer applicants than all begin with them.
    order = np.concatenate([held_out, trained])[: options.applicants]
    applicants, is_bad = applicants[order], is_bad[order]
    held_out = np.arange(min(HELD_OUT_COUNT, options.applicants))
    plain = pipeline.decision_function(applicants)

    imported = from_sklearn(pipeline[-1], samples=rows[trained], name="credit")
    with tempfile.TemporaryDirectory(prefix="cipherd-credit.") as directory:
        served = pathlib.Path(directory) / "programs"
        served.mkdir()
        programs.plan(imported.model, rows[trained], served, device=options.device, max_error=MAX_ERROR)
        with Daemon(served, device=options.device) as daemon:
            print(f"== scoring {len(order)} encrypted applicants", flush=True)
            measured = measure(daemon.target, "credit", rows[order], in_flight=options.in_flight)
    encrypted = measured.outputs[:, 0]

    def auc(scores: np.ndarray, chosen: np.ndarray | slice) -> float:
        return float(roc_auc_score(is_bad[chosen], scores[chosen]))

    everyone = slice(None)
    errors = np.abs(encrypted - plain)
    refused = plain > REFUSAL_THRESHOLD, encrypted > REFUSAL_THRESHOLD
    print()
    report.print_table(
        ["plain", "encrypted"],
        [
            ("AUC, five-fold cross-validation", f"{cross_validated.mean():.3f}", ""),
            (f"AUC, {len(held_out)} held out", f"{auc(plain, held_out):.3f}", f"{auc(encrypted, held_out):.3f}"),
            (f"AUC, {len(order)} scored", f"{auc(plain, everyone):.3f}", f"{auc(encrypted, everyone):.3f}"),
            ("refused", f"{refused[0].sum()}", f"{refused[1].sum()}"),
            ("largest error of a score", "", f"{errors.max():.1e}"),
            ("root mean square error", "", f"{np.sqrt((errors**2).mean()):.1e}"),
        ],
    )
    print()
    report.print_table(["credit"], report.cost_rows("applicants", [measured]))
    print()
    holds = report.print_bars(
        [
            report.Bar(
                f"every score of {len(order)} agrees with scikit-learn's within {MAX_ERROR:.0e}",
                f"errors up to {errors.max():.1e}",
                bool((errors <= MAX_ERROR).all()),
            ),
            report.Bar(
                "AUC equal to three digits",
                f"{auc(encrypted, everyone):.5f}, plain {auc(plain, everyone):.5f}",
                all(round(auc(plain, one), 3) == round(auc(encrypted, one), 3) for one in (everyone, held_out)),
            ),
            report.Bar(
                "every decision equal",
                f"{(refused[0] != refused[1]).sum()} differ; the score nearest to the threshold is "
                f"{np.abs(plain - REFUSAL_THRESHOLD).min():.1e} from it",
                bool((refused[0] == refused[1]).all()),
            ),
        ]
    )
    if options.picture:
        import picture

        picture.draw(options.picture, is_bad, plain, encrypted, held_out, REFUSAL_THRESHOLD)
        print(f"wrote {options.picture}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
