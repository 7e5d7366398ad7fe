"""The whole path, with a site, a broker, workers and a browser of its own."""
