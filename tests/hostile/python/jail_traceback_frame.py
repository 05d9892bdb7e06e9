# attack: reach the frames around through a traceback
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

try:
    1 / 0
except ZeroDivisionError as error:
    frame = error.__traceback__.tb_frame
    while frame.f_back is not None:
        frame = frame.f_back
frame.f_builtins["__import__"]("posix").open("{DIR}/file", 0)
