"""Pure mappings between the schemas of the API and the values of app.services; the command line uses them too."""
