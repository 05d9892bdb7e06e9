# package: numpy
# value: [20800128, 3379998700000.0, 3379998700000.0, 3379998700000.0, 3379998700000.0, 1.0, 3379998700000.0, 499999500000.0, true]
import os
import numpy as np
numbers = np.arange(2_600_000, dtype="f8")
np.save("large.npy", numbers)
np.savez("large.npz", numbers=numbers)
np.savetxt("large.txt", numbers[:1_000_000])
with open("large.bin", "wb") as file:
    file.write(numbers)
try:
    np.memmap("large.bin", dtype="f8", mode="r")
except Exception as error:
    refused = type(error).__name__ in ("ModuleNotFoundError", "UnsupportedOperation")
[
    os.path.getsize("large.npy"),
    float(np.load("large.npy").sum()),
    float(np.load("large.npy", mmap_mode="r").sum()),
    float(np.load("large.npz", mmap_mode="r")["numbers"].sum()),
    float(np.fromfile("large.bin").sum()),
    float(np.fromfile("large.bin", count=1, offset=8)[0]),
    float(np.frombuffer(open("large.bin", "rb").read()).sum()),
    float(np.loadtxt("large.txt").sum()),
    refused,
]
