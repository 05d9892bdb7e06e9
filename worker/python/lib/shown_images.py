"""Images that a program shows: there is no screen, so they become files below /out, which are content of the answer."""

import io
import itertools
import os


def show(save, name):
    """Keeps an image under the first free name: NAME.png, NAME-2.png and so on. `save` writes it to a file as PNG."""
    png = io.BytesIO()
    save(png, format="png")
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    path = next(path for path in (f"/out/{name}.png" for name in names) if not os.path.exists(path))
    with open(path, "wb") as file:
        file.write(png.getvalue())
