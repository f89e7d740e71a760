"""`unskew demo`: one stream under two groupings."""
