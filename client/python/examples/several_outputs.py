import numpy as np
from cipherd.models import Model
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression

rows, progression = load_diabetes(return_X_y=True)
regression, pca = LinearRegression().fit(rows, progression), PCA(2).fit(rows)

model = Model("patient")
x = model.input("x", [rows.shape[1]])
model.output("progression", model.linear(x, regression.coef_[np.newaxis], [regression.intercept_]))
model.output("map", model.linear(x, pca.components_, -pca.components_ @ pca.mean_))
planned = model.plan(rows, max_error=1e-2)

outputs = planned.evaluate({"x": rows})  # as session.evaluate: a dict in, a dict out
print(abs(outputs["progression"][:, 0] - regression.predict(rows)).max())
print(abs(outputs["map"] - pca.transform(rows)).max())
