from concurrent.futures import ThreadPoolExecutor
from mcp_tools.workspace import get_file_by_id

def words(file_id):
    file = get_file_by_id(file_id)
    return file["filename"], len(file["content"].split())

with ThreadPoolExecutor() as pool:
    result = dict(pool.map(words, ["2", "14", "19"]))
result
