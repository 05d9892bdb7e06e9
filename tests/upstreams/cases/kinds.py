# Every kind of result: text, an image, structured content, links, and a slow tool.
from mcp_tools import everything

before, image, after = everything.get_tiny_image()
links = everything.get_resource_links(count=4)[1:]
{
    "echo": everything.echo(message="Grüße, 水門"),
    "sum": everything.get_sum(19.5, 22.5),
    "slow": everything.trigger_long_running_operation(duration=1, steps=4),
    "image": [image.mime_type, len(image.data), sum(image.data), str(before)],
    "structured": [everything.get_structured_content(location=city) for city in ("New York", "Chicago", "Los Angeles")],
    "links": [[link["type"], link["uri"], link["mimeType"]] for link in links],
}
