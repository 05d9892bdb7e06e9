# package: h5py
# value: [true, 3378700000.0, 2599999.0, ["chunks", "more", "numbers"], true, [2600000]]
import os
import h5py
import numpy as np
numbers = np.arange(2_600_000, dtype="f8")
with h5py.File("large.h5", "w") as file:
    file["numbers"] = numbers
    file.create_dataset("chunks", data=numbers.reshape(2_600, 1_000), chunks=(100, 1_000), compression="gzip")
with h5py.File("large.h5", "a") as file:
    file["more"] = 1
with h5py.File("large.h5") as file:
    column, last, names = float(file["chunks"][:, 0].sum()), float(file["numbers"][-1]), sorted(file)
with h5py.File("core.h5", "w", driver="core", backing_store=False) as file:
    shape = list(file.create_dataset("numbers", data=numbers).shape)
[os.path.getsize("large.h5") > 20_000_000, column, last, names, h5py.is_hdf5("large.h5"), shape]
