"""What the programs must return or print, and do: the leaderboard's posts."""

from tasks import task


@task("tweets of a user")
def popular_tags(t):
    tags = [tag for tweet in t.environment("twitter").tweets.values() for tag in tweet["tags"]]
    counts = {tag: tags.count(tag) for tag in tags}
    return [list(pair) for pair in sorted(counts.items(), key=lambda pair: -pair[1])[:2]]


@task("search tweets and comment on them")
def comment_on_success(t):
    found = [number for number, tweet in t.environment("twitter").tweets.items() if "#success" in tweet["tags"]]
    for number in found:
        t.twitter.comment(tweet_id=number, comment_content="Congratulations!")
    return {str(number): "Congratulations!" for number in found}


@task("who is mentioned in my tweets", printed=True)
def mentioned_people(t):
    twitter = t.environment("twitter")
    mentioned = sorted({name[1:] for tweet in twitter.tweets.values() for name in tweet["mentions"]})
    return [f"{mentioned[0]} {len(mentioned)} mentioned; {len(twitter.following_list)} followed"]


@task("user statistics and posting a tweet")
def tweet_statistics(t):
    tweet = t.twitter.post_tweet(content="I have written 10 tweets and follow 2 people", tags=["#statistics"])
    return [tweet["id"], tweet["content"]]
