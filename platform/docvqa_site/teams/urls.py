from django.urls import path

from docvqa_site.teams import views

urlpatterns = [
    path("team/", views.mine, name="mine"),
    path("team/create/", views.create, name="create"),
    path("team/edit/", views.edit, name="edit"),
    path("team/leave/", views.leave, name="leave"),
    path("team/invite/", views.invite, name="invite"),
    path("team/invitations/<int:invitation_id>/revoke/", views.revoke, name="revoke"),
    path("team/invitations/<int:invitation_id>/join/", views.join, name="join"),
    path("team/members/<int:membership_id>/remove/", views.remove, name="remove"),
    path("team/members/<int:membership_id>/hand-over/", views.hand_over, name="hand_over"),
    path("team/keys/", views.add_key, name="add_key"),
    path("team/keys/<int:key_id>/revoke/", views.revoke_key, name="revoke_key"),
    path("team/join/<str:secret>/", views.invitation, name="invitation"),
]
