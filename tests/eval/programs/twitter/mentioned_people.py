from mcp_tools.twitter import get_user_tweets, list_all_following

mentioned = set()
for tweet in get_user_tweets("businesspro"):
    mentioned |= {m.lstrip("@") for m in tweet["mentions"]}
following = list_all_following()["following_list"]
print(sorted(mentioned)[0], len(mentioned), "mentioned;", len(following), "followed")
