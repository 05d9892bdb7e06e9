# package: matplotlib
# value: [["figure-2.png", "figure-3.png", "figure.png"], true, []]
import os
import matplotlib.pyplot as plt
plt.plot([1, 2], [3, 4])
plt.figure()
plt.bar(["a", "b"], [1, 2])
plt.show()
figure, axes = plt.subplots()
axes.hist([1, 2, 2])
figure.show()
plt.close("all")
names = sorted(os.listdir("/out"))
[names, all(open(f"/out/{name}", "rb").read(4) == b"\x89PNG" for name in names), plt.get_fignums()]
