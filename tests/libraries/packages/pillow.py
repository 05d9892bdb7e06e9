# package: pillow
# value: [[40, 20], "PNG", [255, 0, 0], true, [40, 20]]
import io
from PIL import Image, ImageDraw, ImageFont
image = Image.new("RGB", (80, 40), "red")
ImageDraw.Draw(image).text((30, 10), "Hi", fill="white", font=ImageFont.load_default())
small = image.resize((40, 20))
buffer = io.BytesIO()
small.save(buffer, "PNG")
back = Image.open(io.BytesIO(buffer.getvalue()))
jpeg = io.BytesIO()
back.save(jpeg, "JPEG")
back.save("a.png")
[list(back.size), back.format, list(back.getpixel((0, 0))), jpeg.getvalue()[:2] == b"\xff\xd8", list(Image.open("a.png").size)]
