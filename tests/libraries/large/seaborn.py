# package: seaborn
# value: true
import os
import numpy as np
import pandas as pd
import seaborn as sns
rows = 1_300_000
frame = pd.DataFrame({"number": np.arange(rows, dtype="f8"), "group": np.arange(rows) % 3})
sns.histplot(frame, x="number", hue="group", bins=20).get_figure().savefig("large.png")
os.path.getsize("large.png") > 1_000
