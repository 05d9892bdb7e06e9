# package: pillow
# value: [["image-2.png", "image.png"], [2, 1]]
import os
from PIL import Image
Image.new("RGB", (2, 1), "red").show()
Image.new("L", (3, 3)).show(title="grey")
[sorted(os.listdir("/out")), list(Image.open("/out/image.png").size)]
