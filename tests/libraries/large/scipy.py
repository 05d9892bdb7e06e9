# package: scipy
# value: [3379998700000.0, 5194800000, 5194800000, 3379998700000.0, [2000, 2000], [2000, 2000]]
import numpy as np
import scipy.io
import scipy.sparse
from scipy.io import wavfile
numbers = np.arange(2_600_000, dtype="f8")
scipy.io.savemat("large.mat", {"numbers": numbers})
wavfile.write("large.wav", 44_100, (numbers % 1_000).astype("i2").repeat(4))
with scipy.io.netcdf_file("large.nc", "w") as file:
    file.createDimension("x", len(numbers))
    file.createVariable("numbers", "f8", ("x",))[:] = numbers
matrix = scipy.sparse.random(2_000, 2_000, density=0.45, format="csr", random_state=1)
scipy.sparse.save_npz("large.npz", matrix, compressed=False)
scipy.io.mmwrite("large.mtx", matrix)
[
    float(scipy.io.loadmat("large.mat")["numbers"].sum()),
    int(wavfile.read("large.wav")[1].sum()),
    int(wavfile.read("large.wav", mmap=True)[1].sum()),
    float(scipy.io.netcdf_file("large.nc").variables["numbers"][:].sum()),
    list(scipy.sparse.load_npz("large.npz").shape),
    list(scipy.io.mmread("large.mtx").shape),
]
