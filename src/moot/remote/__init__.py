"""A desk that is served elsewhere, asked like one's own: `client.RemoteMoot`. `desk.Desk` is what both kinds are."""
