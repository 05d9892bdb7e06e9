# package: matplotlib
# value: [true, true, true, true, [640, 480]]
import io, struct
import matplotlib.pyplot as plt
figure, axes = plt.subplots()
axes.plot([1, 2, 3], [1, 4, 9], label=r"$x^2$")
axes.bar([1, 2], [3, 2], label="bars äöü 日")
axes.set(title="Sales", xlabel="month", ylabel=r"$\frac{a}{b}$")
axes.legend()
out = {}
for kind in ("png", "svg", "pdf", "jpg"):
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    out[kind] = buffer.getvalue()
[out["png"][:4] == b"\x89PNG", b"<svg" in out["svg"], out["pdf"][:4] == b"%PDF", out["jpg"][:2] == b"\xff\xd8", list(struct.unpack(">II", out["png"][16:24]))]
