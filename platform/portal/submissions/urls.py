from django.urls import URLPattern, URLResolver

app_name = "submissions"
urlpatterns: list[URLPattern | URLResolver] = []
