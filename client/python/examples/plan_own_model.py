import sys

from cipherd.models import from_sklearn
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

features, labels = load_breast_cancer(return_X_y=True)
known, new, known_labels, _ = train_test_split(features, labels, random_state=0)
pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(known, known_labels)

imported = from_sklearn(pipeline, samples=known, name="tumour")
planned = imported.plan(max_error=1e-3)  # chooses all that CKKS needs; measures time and precision
print(planned.summary)
scores = planned.evaluate(new)  # encrypts, evaluates and decrypts in this process: a first look
print(imported.agreement(new, scores, planned))
planned.write(f"{sys.argv[1]}/tumour")  # for the daemon
