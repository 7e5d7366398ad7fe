"""What the site notifies people of: on its pages, and by mail unless they have turned that off."""
