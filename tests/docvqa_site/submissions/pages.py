"""How the tests open the pages of submissions, and send their forms."""

from django.urls import reverse


def page(client, address, *arguments, status=200, **query):
    response = client.get(reverse(f"submissions:{address}", args=arguments), query)
    assert response.status_code == status
    return response.content.decode()


def post(client, address, *arguments, follow=False, **data):
    return client.post(reverse(f"submissions:{address}", args=arguments), data, follow=follow)
