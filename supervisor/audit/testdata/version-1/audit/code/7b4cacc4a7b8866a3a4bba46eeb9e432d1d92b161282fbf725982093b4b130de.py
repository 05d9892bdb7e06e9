from mcp_tools.fixture import add
add(a=1, b=2)
import time
time.sleep(20)
