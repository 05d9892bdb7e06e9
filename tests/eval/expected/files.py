"""What the programs must return or print, and do: the leaderboard's file system."""

from tasks import task


@task("list the files of the current directory")
def text_files(t):
    return [name for name in t.environment("files").root.contents if name.endswith(".txt")]


@task("count words in files")
def word_counts(t):
    texts = {name: one.content for name, one in t.environment("files").root.contents.items() if name.endswith(".txt")}
    counts = {name: len(text.split()) for name, text in texts.items()}
    return {"counts": counts, "total": sum(counts.values())}


@task("search for a pattern in files", printed=True)
def grep_history(t):
    contents = t.environment("files").root.contents
    return [f"{name}: {contents[name].content}" for name in ("History101.txt", "History202.txt")]


@task("copy files to a directory")
def back_up_reports(t):
    for name in ("report1.txt", "report2.txt"):
        t.files.cp(source=name, destination="Backup")
    t.files.cd(folder="Backup")
    return ["report1.txt", "report2.txt"]


@task("read two files and write a third")
def combine_reports(t):
    text = "Quarter 1 financial report.\nQuarter 1 sales report."
    t.files.touch(file_name="combined.txt")
    t.files.echo(content=text, file_name="combined.txt")
    return text


@task("size of files")
def longest_file_as_json(t):
    documents = {name: one for name, one in t.environment("files").root.contents.items() if "." in name}
    return max(documents, key=lambda name: len(documents[name].content))
