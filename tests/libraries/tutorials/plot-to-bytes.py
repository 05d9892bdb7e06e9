# task: A bar chart as the bytes of a PNG image
# value: {"type":"PNG","width":600,"height":400,"colours":true}
import io
import matplotlib.pyplot as plt
from PIL import Image
figure, axes = plt.subplots(figsize=(6, 4), dpi=100)
axes.bar(["Q1", "Q2", "Q3"], [3, 5, 4], color=["tab:blue", "tab:orange", "tab:green"])
axes.set_title("Revenue by quarter")
axes.set_ylabel("million €")
buffer = io.BytesIO()
figure.savefig(buffer, format="png")
image = Image.open(io.BytesIO(buffer.getvalue()))
{"type": image.format, "width": image.width, "height": image.height, "colours": len(set(image.convert("RGB").resize((60, 40)).getdata())) > 10}
