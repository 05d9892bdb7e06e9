// The page is written here.
