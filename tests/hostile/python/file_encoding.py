# attack: let a codec be loaded from disk
# outcome: error unknown encoding
# outcome with packages: ok {"base64": "pw=="}
# control: outside

"x".encode("cp500")
