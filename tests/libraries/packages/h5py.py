# package: h5py
# value: [[1, 2], [1, 2], ["a", "b"]]
import io
import h5py
buffer = io.BytesIO()
with h5py.File(buffer, "w") as file:
    file["a"] = [1, 2]
for mode, name in [("w", "a"), ("a", "b")]:
    with h5py.File("kept.h5", mode) as file:
        file[name] = [1, 2]
with h5py.File("kept.h5") as file:
    values, names = file["b"][:].tolist(), sorted(file)
[h5py.File(io.BytesIO(buffer.getvalue()), "r")["a"][:].tolist(), values, names]
