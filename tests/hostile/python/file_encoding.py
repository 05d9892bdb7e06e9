# attack: let a codec be loaded from disk
# outcome: error unknown encoding
# control: outside

"x".encode("cp500")
