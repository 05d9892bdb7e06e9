from mcp_tools.twitter import comment, get_tweet_comments, search_tweets

commented = {}
for tweet in search_tweets(keyword="#success"):
    comment(tweet_id=tweet["id"], comment_content="Congratulations!")
    commented[tweet["id"]] = get_tweet_comments(tweet_id=tweet["id"])[-1]["content"]
commented
