from collections import Counter
from mcp_tools.twitter import get_user_tweets

tweets = get_user_tweets(username="businesspro")
tags = Counter(tag for tweet in tweets for tag in tweet["tags"])
tags.most_common(2)
