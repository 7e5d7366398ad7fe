"""American English, as Django calls it: the language of the site."""
