# package: numpy
# value: [6.0, [2.0, 3.0], 12, true, [0.0, 1.0], [2, 2]]
import io, numpy as np
a = np.array([[2.0, 0.0], [0.0, 3.0]])
buffer = io.BytesIO()
np.save(buffer, a)
back = np.load(io.BytesIO(buffer.getvalue()))
np.savetxt("a.txt", np.arange(2))
np.save("a.npy", a)
rng = np.random.default_rng(7)
[round(float(np.linalg.det(a)), 6), sorted(np.linalg.eigvals(a).tolist()), int(np.arange(4).reshape(2, 2).sum() * 2), bool((back == a).all()), np.loadtxt("a.txt").tolist(), list(np.load("a.npy").shape)]
