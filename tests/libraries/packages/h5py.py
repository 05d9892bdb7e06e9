# package: h5py
# value: [1, 2]
import io
import h5py
buffer = io.BytesIO()
with h5py.File(buffer, "w") as file:
    file["a"] = [1, 2]
h5py.File(io.BytesIO(buffer.getvalue()), "r")["a"][:].tolist()
