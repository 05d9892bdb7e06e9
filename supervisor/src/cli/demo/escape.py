import socket

def attempt(action):
    try:
        return str(action())
    except OSError as error:
        return f"{type(error).__name__}: {error}"

[attempt(lambda: open("/etc/passwd").read()), attempt(lambda: socket.create_connection(("example.com", 443)))]
