# attack: go on in a destructor after the answer
# outcome: ok "done"
# control: none: outside it would not end

# The first final answer counts; whatever the worker does then, it does in a process that is being killed.
class Goes:
    def __del__(self):
        from mcp_tools.fixture import text

        while True:
            text(text="after the answer")


goes = Goes()
"done"
