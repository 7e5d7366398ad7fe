"""How the administration writes dates: as the site's pages do."""
