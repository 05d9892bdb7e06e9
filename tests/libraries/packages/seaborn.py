# package: seaborn
# value: [true, true]
import io
import pandas as pd
import seaborn as sns
import matplotlib.pyplot as plt
frame = pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 4, 9, 16], "kind": list("aabb")})
sns.set_theme()
axes = sns.scatterplot(data=frame, x="x", y="y", hue="kind")
first = io.BytesIO()
axes.figure.savefig(first)
grid = sns.heatmap(frame[["x", "y"]].corr(), annot=True)
sns.histplot(data=frame, x="y")
sns.boxplot(data=frame, x="kind", y="y")
second = io.BytesIO()
plt.savefig(second)
[first.getvalue()[:4] == b"\x89PNG", len(second.getvalue()) > 1000]
