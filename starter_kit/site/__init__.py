"""The participant's side of a site: access to its REST API, and the credentials of a private training run.

`client.SiteClient` is the entry point. It has one method for each step of submitting and returns the messages of
`evaluator.messages.api`. `uploading.upload_file` puts a file into its place in a draft, and `credentials` holds the
team's signing key and the run token that a training record carries.
"""
