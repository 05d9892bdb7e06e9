# Makes random sequences of operations on files, and collects the result of each. SEEDS is set before.
import os
import random

NAMES = ["a", "b", "c", "a/b", "a/c", "b/a", "a/b/c", "c/", "a/../b", "./c", "missing/a", "a/b/c/d"]
MODES = ["r", "r+", "w", "w+", "a", "a+", "x", "x+"]


def run_sequence(seed):
    choose = random.Random(seed)
    streams = [None, None, None]
    results = []

    def name():
        return choose.choice(NAMES)

    def open_stream():
        slot, path, mode = choose.randrange(3), name(), choose.choice(MODES)
        kind = choose.choice(["binary", "unbuffered", "text"])
        close(slot)
        if kind == "text":
            streams[slot] = open(path, mode, newline=choose.choice([None, "", "\n", "\r\n"]))
        else:
            streams[slot] = open(path, mode + "b", -1 if kind == "binary" else 0)
        return kind

    def close(slot):
        stream, streams[slot] = streams[slot], None
        if stream is not None:
            stream.close()

    def on_stream():
        stream = streams[choose.randrange(3)]
        what, number, whence = choose.randrange(8), choose.randrange(40), choose.randrange(3)
        text = choose.choice(["", "x", "line\n", "ž\r\n", "long " * 20])
        if stream is None:
            return None
        is_text = not hasattr(stream, "readinto")
        if what < 2:
            return stream.write(text if is_text else text.encode())
        if what == 2:
            return repr(stream.read(number))
        if what == 3:
            return repr(stream.readline())
        if what == 4:
            return stream.seek(0 if is_text else number - 5, 0 if is_text else whence)
        if what == 5:
            return stream.truncate(choose.choice([None, number])) if not is_text else stream.flush()
        if what == 6:
            return [stream.tell(), stream.readable(), stream.writable()]
        return stream.flush()

    def whole():
        with open(name(), "rb") as file:
            return repr(file.read())

    def status():
        found = os.stat(name())
        return [found.st_mode & 0o170000, found.st_size if found.st_mode & 0o100000 else None]

    operations = [
        *[open_stream] * 6, *[on_stream] * 12, whole, whole, status,
        lambda: close(choose.randrange(3)),
        lambda: os.mkdir(name()),
        lambda: os.makedirs(name(), exist_ok=choose.random() < 0.5),
        lambda: os.rmdir(name()),
        lambda: os.remove(name()),
        lambda: os.rename(name(), name()),
        lambda: os.replace(name(), name()),
        lambda: os.truncate(name(), choose.randrange(30)),
        lambda: sorted(os.listdir(name())),
        lambda: [os.path.exists(name()), os.path.isdir(name()), os.path.isfile(name())],
        lambda: sorted([top, sorted(folders), sorted(files)] for top, folders, files in os.walk(".")),
    ]
    for _ in range(60):
        operation = choose.choice(operations)
        try:
            results.append(operation())
        except (OSError, ValueError) as error:
            results.append([type(error).__name__, getattr(error, "errno", None), getattr(error, "strerror", None)])
    for slot in range(3):
        close(slot)
    results.append(sorted([top, sorted(folders), sorted(files)] for top, folders, files in os.walk(".")))
    return results


def run_all():
    found = []
    for seed in SEEDS:
        os.mkdir(f"sequence{seed}")
        os.chdir(f"sequence{seed}")
        found.append(run_sequence(seed))
        os.chdir("..")
    return found


run_all()
