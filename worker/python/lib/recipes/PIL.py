"""pillow: the modules of image formats are imported when an image is opened or saved."""

from lockhouse_shown_images import show



def rehearse():
    import io

    from PIL import Image, ImageDraw, ImageFilter, ImageFont, ImageOps

    Image.init()
    image = Image.new("RGB", (20, 20), "red")
    ImageDraw.Draw(image).text((1, 1), "a", font=ImageFont.load_default())
    image.filter(ImageFilter.BLUR), ImageOps.grayscale(image), image.resize((4, 4)), image.convert("P")
    for form in ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "PDF"):
        buffer = io.BytesIO()
        image.save(buffer, form)
        if form != "PDF":
            Image.open(io.BytesIO(buffer.getvalue())).load()


def _show(image, *args, **kwargs):
    """Shows an image."""
    show(image.save, "image")


def install():
    from PIL import Image

    Image.init()
    Image.Image.show = _show


MODULES = "PIL.ImageFont PIL.ImageDraw PIL.ImageFilter PIL.ImageOps PIL.ImageEnhance PIL.ImageChops PIL.ImageStat PIL.ImageColor " \
          "PIL._imagingft PIL._imagingmath PIL._imagingmorph PIL._webp PIL._avif PIL._imagingcms"
