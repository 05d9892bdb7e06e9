"""The table of real upstream servers."""

from installed import Npm, PyPI
from server import FIRST, MODERN, Call, Server, Trait

MCP = "@modelcontextprotocol/server-"
# A virtual environment with mcp 1.6, whose dependencies conflict with those of other servers.
OLDER = "venv-older"
REFUSES = {Trait.REFUSES_INITIALIZE}
# An address at which nothing listens.
NOBODY = "127.0.0.1:9"

# Servers that `prepare.sh --subset` installs.
SUBSET = [
    Server(
        "filesystem",
        Npm(f"{MCP}filesystem"),
        14,
        Call("filesystem.read_text_file(path='@FILES@/sale-001.json')", words="region"),
        ["@FILES@"],
    ),
    Server(
        "memory",
        Npm(f"{MCP}memory"),
        9,
        Call(
            "memory.create_entities(entities=[{'name': 'lock', 'entityType': 'gate', 'observations': []}])",
            words="lock",
        ),
        environment={"MEMORY_FILE_PATH": "@PLACE@/memory.jsonl"},
    ),
    Server("everything", Npm(f"{MCP}everything"), 15, Call("everything.get_sum(a=40, b=2)", words="42")),
    Server(
        "thinking",
        Npm(f"{MCP}sequential-thinking"),
        1,
        Call("thinking.sequentialthinking('open', False, 1, 1)", words='"thoughtNumber": 1'),
    ),
    Server(
        "azure",
        Npm("@azure/mcp"),
        235,
        Call("azure.get_azure_bestpractices_get(resource='general', action='deployment')", words="deploy"),
        ["server", "start", "--mode", "all"],
        traits={Trait.PRINTS_BETWEEN},
    ),
    Server("redis", Npm(f"{MCP}redis"), 0, None, [f"redis://{NOBODY}"], traits={Trait.HANGS}, start_timeout_s=5),
    Server(
        "git",
        PyPI("mcp-server-git"),
        12,
        Call("git.git_log(repo_path='@REPOSITORY@', max_count=1)", words="Change 299"),
        era=MODERN,
        traits=REFUSES,
    ),
    Server(
        "time",
        PyPI("mcp-server-time"),
        2,
        Call("time.get_current_time(timezone='UTC')", words="UTC"),
        era=MODERN,
        traits=REFUSES,
    ),
    Server(
        "sqlite",
        PyPI("mcp-server-sqlite", OLDER),
        6,
        Call("sqlite.read_query(query='select 6 * 7 as answer')", words="42"),
        ["--db-path", "@PLACE@/lock.sqlite"],
        era=FIRST,
        traits={Trait.CRASHES_ON_DISCOVER, Trait.IGNORES_EOF},
    ),
]

OTHERS = [
    Server(
        "github",
        Npm(f"{MCP}github"),
        26,
        Call("github.get_issue(owner='lock', repo='lock', issue_number='x')", words="must be number", fails=True),
        era=FIRST,
    ),
    Server(
        "slack",
        Npm(f"{MCP}slack"),
        8,
        Call("slack.slack_post_message(channel_id='', text='')", words="Missing required arguments"),
        environment={"SLACK_BOT_TOKEN": "xoxb-none", "SLACK_TEAM_ID": "T0"},
        era=FIRST,
    ),
    Server(
        "brave",
        Npm(f"{MCP}brave-search"),
        2,
        Call("brave.brave_web_search(query=1)", words="must be string", fails=True),
        environment={"BRAVE_API_KEY": "none"},
        era=FIRST,
    ),
    Server(
        "postgres",
        Npm(f"{MCP}postgres"),
        1,
        Call("postgres.query(sql='select 1')", words="ECONNREFUSED", fails=True),
        [f"postgresql://{NOBODY}/none"],
        era=FIRST,
    ),
    Server(
        "gitlab",
        Npm("@zereight/mcp-gitlab"),
        201,
        Call("gitlab.get_project(project_id='41')", words="canal/lock-house"),
        environment={
            "GITLAB_PERSONAL_ACCESS_TOKEN": "none",
            "GITLAB_API_URL": "@API@/api/v4",
            "USE_PIPELINE": "true",
            "USE_MILESTONE": "true",
            "USE_GITLAB_WIKI": "true",
        },
    ),
    Server(
        "notion",
        Npm("@notionhq/notion-mcp-server"),
        24,
        Call("notion.API_get_self()", words="lock keeper"),
        environment={"NOTION_TOKEN": "none", "BASE_URL": "@API@"},
    ),
    Server(
        "firecrawl",
        Npm("firecrawl-mcp"),
        29,
        Call("firecrawl.firecrawl_scrape(url='https://example.org/')", words="gate is open"),
        environment={"FIRECRAWL_API_KEY": "none", "FIRECRAWL_API_URL": "@API@"},
    ),
    Server(
        "hubspot",
        Npm("@hubspot/mcp-server"),
        21,
        Call("hubspot.hubspot_generate_feedback_link()", words="developers.hubspot.com"),
        environment={"PRIVATE_APP_ACCESS_TOKEN": "none", "BASE_URL_OVERRIDE": "@API@"},
    ),
    Server(
        "chart",
        Npm("@antv/mcp-server-chart"),
        27,
        Call("chart.generate_pie_chart(data=[{'category': 'lock', 'value': 1}])", words="charts.example/lock.png"),
        environment={"VIS_REQUEST_SERVER": "@API@/chart"},
    ),
    Server(
        "starwind",
        Npm("@starwind-ui/mcp"),
        5,
        Call("starwind.starwind_init(packageManager='npm')", words="npx starwind"),
    ),
    Server(
        "playwright",
        Npm("@playwright/mcp"),
        25,
        Call("playwright.browser_snapshot()", words="no-browser", fails=True),
        ["--executable-path", "@PLACE@/no-browser"],
    ),
    Server(
        "devtools",
        Npm("chrome-devtools-mcp"),
        32,
        Call("devtools.list_pages()", words="no-browser", fails=True),
        ["--executablePath=@PLACE@/no-browser"],
    ),
    Server("tavily", Npm("tavily-mcp"), 5, None, environment={"TAVILY_API_KEY": "none"}),
    Server(
        "context7",
        Npm("@upstash/context7-mcp"),
        2,
        Call("context7.resolve_library_id(query='lock', libraryName='lock')", words="/canal/lock"),
        environment={"CONTEXT7_API_URL": "@API@/context7"},
        era=MODERN,
    ),
    Server("figma", Npm("figma-developer-mcp"), 2, None, ["--stdio", "--figma-api-key=none"], {"DO_NOT_TRACK": "1"}),
    Server("mui", Npm("@mui/mcp"), 2, None, traits={Trait.IGNORES_EOF}),
    Server("exa", Npm("exa-mcp-server"), 2, None, environment={"EXA_API_KEY": "none"}),
    Server(
        "fetch",
        PyPI("mcp-server-fetch"),
        1,
        Call("fetch.fetch(url='@API@/page', raw=True)", words="gate is open"),
        ["--ignore-robots-txt", "--allow-private-ips"],
        era=MODERN,
        traits=REFUSES,
    ),
    Server(
        "duckdb",
        PyPI("mcp-server-motherduck"),
        4,
        Call("duckdb.execute_query(sql='select 6 * 7 as answer')", words="42"),
        ["--db-path", ":memory:", "--read-write"],
        era=MODERN,
        traits=REFUSES,
    ),
    Server(
        "alchemy",
        PyPI("mcp-alchemy"),
        4,
        Call("alchemy.execute_query(query='select 6 * 7 as answer')", words="42"),
        environment={"DB_URL": "sqlite:///@PLACE@/alchemy.sqlite"},
        era=MODERN,
        traits=REFUSES,
    ),
    Server(
        "awsdocs",
        PyPI("awslabs.aws-documentation-mcp-server"),
        5,
        Call(
            "awsdocs.read_documentation(url='https://example.org/')",
            words="URL must be from list of supported domains",
            fails=True,
        ),
        era=MODERN,
        traits=REFUSES,
    ),
    Server(
        "excel",
        PyPI("excel-mcp-server"),
        46,
        Call("excel.create_workbook(path='@PLACE@/lock.xlsx')", words="lock"),
        ["stdio"],
        era=MODERN,
        traits=REFUSES,
    ),
    Server(
        "chroma",
        PyPI("chroma-mcp", OLDER),
        13,
        Call("chroma.chroma_create_collection(collection_name='gates')", words="gates"),
        ["--client-type", "ephemeral"],
        {"ANONYMIZED_TELEMETRY": "False", "PYTHONUNBUFFERED": "1"},
        era=FIRST,
        traits={Trait.CRASHES_ON_DISCOVER, Trait.IGNORES_EOF, Trait.PRINTS_FIRST},
    ),
]
