"""The Python that the endpoints of web servers share: configurations, sockets, start and stop of the server."""
