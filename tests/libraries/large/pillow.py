# package: pillow
# value: [[20001078, 232], [20000122, 232], [20000017, 232], [112457, 232]]
# Pillow maps uncompressed images of a path into memory, if it can.
import os
import numpy as np
from PIL import Image
image = Image.fromarray((np.arange(20_000_000) % 251).astype("u1").reshape(4_000, 5_000))
def saved(name):
    image.save(name)
    return [os.path.getsize(name), Image.open(name).getpixel((1, 1))]
[saved(f"large.{ending}") for ending in ("bmp", "tiff", "ppm", "png")]
