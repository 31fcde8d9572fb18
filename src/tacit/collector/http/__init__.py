"""The HTTP layer: ASGI application, routes, connections, limits of uploads, and the OpenAPI description."""
