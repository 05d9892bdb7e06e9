from mcp_tools.twitter import get_user_stats, post_tweet

stats = get_user_stats(username="businesspro")
tweet = post_tweet(
    content=f"I have written {stats['tweet_count']} tweets and follow {stats['following_count']} people",
    tags=["#statistics"],
)
tweet["id"], tweet["content"]
