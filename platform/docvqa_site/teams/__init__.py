"""Teams: members, invitations and signing keys."""
