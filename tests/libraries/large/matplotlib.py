# package: matplotlib
# value: [true, [4000, 5000, 4]]
import os
import matplotlib.pyplot as plt
import numpy as np
numbers = np.arange(2_600_000, dtype="f8")
figure, axes = plt.subplots()
axes.plot(numbers)
axes.scatter(numbers[:300_000], numbers[:300_000], s=1)
figure.savefig("large.png")
plt.imsave("image.png", (np.arange(20_000_000) % 251).astype("u1").reshape(4_000, 5_000))
[os.path.getsize("large.png") > 1_000, list(plt.imread("image.png").shape)]
