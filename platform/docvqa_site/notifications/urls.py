from django.urls import path

from docvqa_site.notifications import views

app_name = "notifications"
urlpatterns = [
    path("account/notifications/", views.inbox, name="list"),
    path("account/notifications/read/", views.read, name="read"),
    path("account/notifications/mail/", views.choose, name="choose"),
    path("account/notifications/<int:notification_id>/open/", views.open_one, name="open"),
    path("unsubscribe/<str:token>/", views.unsubscribe, name="unsubscribe"),
]
