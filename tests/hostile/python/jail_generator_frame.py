# attack: reach the frames around a generator
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

def inner():
    yield generator.gi_frame.f_back.f_back or generator.gi_frame.f_back


generator = inner()
frame = next(generator)
posix = frame.f_builtins["__import__"]("posix")
posix.open("{DIR}/file", 0)
