# A decision between calls. The seed leaves out the import.
from mcp_tools import docker, k8s, slack

# Chain Docker, K8s, and Slack without context bloat
status = docker.ps()
if any(c['status'] == 'unhealthy' for c in status):
    k8s.restart_deployment("api-server")
    slack.send_message(channel="alerts", text="Restarted unhealthy containers")
